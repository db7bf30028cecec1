// The kernels of lanes, compiled with AVX-512.
#define RARESTREAM_ISA avx512
#include "lanes/learn.hpp"
