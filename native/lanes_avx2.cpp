#define RARESTREAM_ISA avx2
#include "lanes/learn.hpp"
