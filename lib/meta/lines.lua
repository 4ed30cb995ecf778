---@meta nclua.lines

---What a prompt needs: lines edited on the terminal, and calls that Ctrl-C interrupts.
local lines = {}

---An editor of the terminal's lines, with the keys of emacs and of the user's ~/.editrc.
---@return lines.editor? editor
---@return string? message
---@return string? code
function lines.editor() end

---A line of standard input, where that is no terminal.
---@return string? line nil at the end
function lines.read() end

---Appends to a file that, if this makes it, only its owner may read. Follows no link.
---@param path string
---@param text string
---@return boolean? ok
---@return string? message
---@return string? code
function lines.append(path, text) end

---As xpcall; and Ctrl-C raises "interrupted" in the function: in its coroutines, and while
---it waits for a device, too. An error that is caught inside is raised again and again.
---@param handler fun(message: any): any
---@param fn fun(...): ...
---@param ... any
---@return boolean ok
---@return any ... results, or what the handler made of the error
function lines.call(handler, fn, ...) end

---@class lines.editor
local editor = {}

---Lets the user edit a line.
---@param prompt string
---@return string|false|nil line false after Ctrl-C, nil after Ctrl-D
function editor:read(prompt) end

---What Tab does. The function is given the text before the cursor, and returns what to
---insert there and what to show below, both of which may be nil.
---@param fn fun(text: string): string?, string?
---@return lines.editor self
function editor:on_tab(fn) end

---Adds to what up-arrow finds; several lines are one entry.
---@param text string
---@return lines.editor self
function editor:remember(text) end

---Gives the terminal back as it was. Also `<close>`.
function editor:close() end

return lines
