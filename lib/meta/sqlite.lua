---@meta nclua.sqlite
---SQLite databases. What opens or prepares returns nil, message, code if the world says no;
---everything that runs a statement raises (the message begins with the code), for an unread
---nil would be a wrong number. Messages show the SQL, and the line and column if known.
---
---Values: INTEGER is a Lua integer, REAL a float, TEXT and BLOB are strings, NULL is nil.
---Bound, a boolean is 0 or 1, a string TEXT, `sqlite.blob` a BLOB, nil or `sqlite.null` NULL;
---a NaN becomes NULL, for SQLite stores none. `...` stands for the values of the parameters:
---as many as there are, or one table by name (`{ id = 1 }` for `:id`, `@id`, `$id`) or place.
---
---SQL has these aggregates, which skip NULL, are NULL for no rows, and fail for other values:
---`median(x)`, `percentile(x, q [, 'nearest_rank' | 'linear'])`, `stdev(x [, 'population' |
---'sample'])`, `cv(x)` in percent. The first word is the default; see nclua.stats.
local sqlite = {}

---NULL where a nil would not be seen: in tables. Equal to `cjson.null`.
---@type lightuserdata
sqlite.null = nil

---SQLite's version, such as "3.40.1".
---@type string
sqlite.version = nil

---@class sqlite.blob
---@operator len: integer

---@alias sqlite.value nil|boolean|number|string|lightuserdata|sqlite.blob
---@alias sqlite.row table<string, any> by column name; of equal names the last one

---A string to bind as a BLOB.
---@param bytes string
---@return sqlite.blob
function sqlite.blob(bytes) end

---The name in double quotes, its own doubled: safe in any SQL.
---@param name string
---@return string
function sqlite.quote_identifier(name) end

---@class sqlite.open_options
---@field mode? "rw"|"ro"|"memory" default "rw", which creates the file
---@field busy_timeout_ms? integer how long to wait for another's lock, default 5000

---Opens a database. A process with an open one cannot run ranks.
---@param path? string nil for mode "memory"
---@param options? sqlite.open_options
---@return sqlite.database? database
---@return string? message
---@return string? code "SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_BUSY"
function sqlite.open(path, options) end

---@class sqlite.database
---@field path string? absolute; nil in memory
---@field changes integer rows that the last insert, update or delete changed
---@field last_rowid integer of the last inserted row
---@field in_transaction boolean
local database = {}

---Runs statements to the end and drops their rows; with values, one statement.
---@param sql string
---@param ... sqlite.value|table
---@return sqlite.database? self
---@return string? message
---@return string? code "SQLITE_ERROR", "SQLITE_BUSY", "SQLITE_CONSTRAINT"
function database:exec(sql, ...) end

---@param sql string exactly one statement
---@return sqlite.statement? statement
---@return string? message
---@return string? code
function database:prepare(sql) end

---Iterates over rows: `for row in db:rows("select a from t where b = ?", 1) do … end`.
---@param sql string
---@param ... sqlite.value|table
---@return fun(): sqlite.row?
---@return nil
---@return nil
---@return sqlite.statement closed when the loop is left
function database:rows(sql, ...) end

---The first row.
---@param sql string
---@param ... sqlite.value|table
---@return sqlite.row?
function database:row(sql, ...) end

---The first column of the first row.
---@param sql string
---@param ... sqlite.value|table
---@return any
function database:value(sql, ...) end

---The first column of all rows, which must be numbers.
---@param sql string
---@param ... sqlite.value|table
---@return stats.vector
function database:vector(sql, ...) end

---Inserts rows, all or none. A row is a table by column name, or, if `columns` are given, a
---list in their order; what is missing is NULL. Without `columns` those of the first row are
---taken, and a later row with another one raises; with them, other keys are left out.
---@param table_name string
---@param rows table[]
---@param columns? string[]
---@return sqlite.database self
function database:insert(table_name, rows, columns) end

---Calls fn within a transaction and returns what it returns. An error in it rolls back and
---goes on; nested calls are savepoints. fn cannot yield.
---@param fn fun(db: sqlite.database): ...
---@param mode? "deferred"|"immediate"|"exclusive" of an outermost one, default "deferred"
---@return ...
function database:transaction(fn, mode) end

---Closes the database and its statements, and rolls back what is open. Also `<close>`.
function database:close() end

---@class sqlite.statement
---@field sql string
---@field columns string[]
local statement = {}

---Sets the values of the parameters and goes to the start.
---@param ... sqlite.value|table
---@return sqlite.statement self
function statement:bind(...) end

---The next row; nil after the last one, and then the first again.
---@return sqlite.row?
function statement:step() end

---Runs from start to end, with these values, or else with those of `bind`.
---@param ... sqlite.value|table
---@return sqlite.statement self
function statement:run(...) end

---Iterates over rows from the start. One run at a time: an older iterator raises.
---@param ... sqlite.value|table
---@return fun(): sqlite.row?
---@return nil
---@return nil
---@return sqlite.cursor ends the run when the loop is left
function statement:rows(...) end

---@class sqlite.cursor
local cursor = {}

---Ends the run, if it is still the statement's.
function cursor:close() end

---Ends the run, so that it locks nothing; the values stay.
---@return sqlite.statement self
function statement:reset() end

---Also `<close>`.
function statement:close() end

return sqlite
