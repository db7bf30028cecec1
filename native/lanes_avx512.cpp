#define RARESTREAM_ISA avx512
#include "lanes/learn.hpp"
