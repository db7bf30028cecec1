// The kernels of learners, compiled with AVX2.
#define RARESTREAM_ISA avx2
#include "kernels_body.hpp"
