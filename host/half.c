#include "host/half.h"
