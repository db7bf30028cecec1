// What is done to rows from outside, for any machine.
#define RARESTREAM_ISA portable
#include "survey_body.hpp"
