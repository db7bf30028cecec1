// The kernels of lanes, for any machine.
#define RARESTREAM_ISA portable
#include "lanes/learn.hpp"
