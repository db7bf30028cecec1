// The kernels as every machine can run them.
#define RARESTREAM_ISA portable
#include "kernels_body.hpp"
