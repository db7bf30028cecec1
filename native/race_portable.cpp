#define RARESTREAM_ISA portable
#include "race_body.hpp"
