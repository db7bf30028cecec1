// A sum with a second term for its rounding error (Neumaier 1974).
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
