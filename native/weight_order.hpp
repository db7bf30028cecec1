// The order in which a smaller model keeps weights: by |w|, the largest first, of equal ones the lower index first.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "score_sort.hpp"

namespace rarestream {

// The coordinates of the weights that are not zero, in that order.
template <class Real>
std::vector<std::int32_t> ranked(const Real* weights, std::int64_t d) {
    struct Item {
        decltype(key_of(Real{})) key;
        std::int32_t index;
    };
    std::vector<Item> items, scratch;
    for (std::int64_t j = 0; j < d; ++j)
        if (weights[j] != 0)
            items.push_back({static_cast<decltype(Item::key)>(~key_of(std::fabs(weights[j]))), std::int32_t(j)});
    radix_sort(items, scratch, [](const Item& item) -> std::uint64_t { return item.key; });  // is stable
    std::vector<std::int32_t> order(items.size());
    for (std::size_t r = 0; r < items.size(); ++r) order[r] = items[r].index;
    return order;
}

}  // namespace rarestream
