#ifndef HOST_HALF_H
#define HOST_HALF_H

/* The small floating-point formats to and from float: round to nearest, ties to even, as
   a GPU's conversions do. NaN stays NaN. f8e4m3 has no infinity: overflow gives NaN. */

#include <stdint.h>

float half_from_f16(uint16_t bits);
float half_from_bf16(uint16_t bits);
float half_from_f8e4m3(uint8_t bits);
float half_from_f8e5m2(uint8_t bits);

uint16_t half_to_f16(float value);
uint16_t half_to_bf16(float value);
uint8_t half_to_f8e4m3(float value);
uint8_t half_to_f8e5m2(float value);

#endif
