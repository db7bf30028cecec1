// A sum that carries its rounding error along (Neumaier 1974).
#pragma once

namespace rarestream {

struct CompensatedSum {
    double value = 0, rest = 0;
    void add(double x) {
        const double next = value + x, part = next - value;
        rest += (value - (next - part)) + (x - part);
        value = next;
    }
    double total() const { return value + rest; }
};

}  // namespace rarestream
