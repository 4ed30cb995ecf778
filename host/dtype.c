#include "host/dtype.h"
