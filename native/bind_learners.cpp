#include "arrays.hpp"

namespace rarestream {

void bind_learners(nb::module_&) {}

}  // namespace rarestream
