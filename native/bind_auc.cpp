#include "arrays.hpp"

namespace rarestream {

void bind_auc(nb::module_&) {}

}  // namespace rarestream
