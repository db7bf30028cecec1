// The kernels of lanes, compiled with AVX2.
#define RARESTREAM_ISA avx2
#include "lanes/learn.hpp"
