#define RARESTREAM_ISA avx512
#include "race_body.hpp"
