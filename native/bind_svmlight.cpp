#include "arrays.hpp"

namespace rarestream {

void bind_svmlight(nb::module_&) {}

}  // namespace rarestream
