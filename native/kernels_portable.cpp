// The kernels of learners, for any machine.
#define RARESTREAM_ISA portable
#include "kernels_body.hpp"
