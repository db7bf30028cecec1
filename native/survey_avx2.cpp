// What is done to rows from outside, compiled with AVX2.
#define RARESTREAM_ISA avx2
#include "survey_body.hpp"
