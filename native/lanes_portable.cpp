#define RARESTREAM_ISA portable
#include "lanes/learn.hpp"
