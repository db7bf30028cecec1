#define RARESTREAM_ISA avx2
#include "race_body.hpp"
