// What this machine can do at best with the same index stream, and a quick writer of text files.
// Compiled by machine.py when the benchmark runs; nothing here is part of the package.
#include <cstdint>
#include <cstdio>
#include <cstring>

extern "C" {

// Reads, changes and writes the 8 bytes of every index, in order: the least a learner with 8 bytes of state can do.
void read_modify_write(const int32_t* indices, int64_t count, uint64_t* table, int64_t ahead) {
    if (ahead == 0) {
        for (int64_t i = 0; i < count; ++i) table[indices[i]] += 1;
        return;
    }
    int64_t i = 0;
    for (; i + ahead < count; ++i) {
        __builtin_prefetch(table + indices[i + ahead], 1);
        table[indices[i]] += 1;
    }
    for (; i < count; ++i) table[indices[i]] += 1;
}

// Reads indices and values once, in order: the least anything that sees the data can do.
double streaming_read(const int32_t* indices, const float* values, int64_t count) {
    int64_t whole = 0;
    float sums[16] = {};
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        for (int lane = 0; lane < 16; ++lane) {
            whole += indices[i + lane];
            sums[lane] += values[i + lane];
        }
    double total = static_cast<double>(whole);
    for (float sum : sums) total += sum;
    return total;
}

static char* digits(char* at, uint64_t number) {
    char reversed[20];
    int length = 0;
    do reversed[length++] = static_cast<char>('0' + number % 10);
    while (number /= 10);
    while (length) *at++ = reversed[--length];
    return at;
}

// Rows as text. svmlight: "1 12:0.0523411"; Vowpal Wabbit: "1 | 12:0.0523411", and "12" alone where the value is 1.
int write_text(const char* path, const char* mode, int64_t rows, const int64_t* indptr, const int32_t* indices,
               const float* values, const int8_t* labels, int vw) {
    std::FILE* file = std::fopen(path, mode);
    if (!file) return 1;
    static char buffer[1 << 16];
    for (int64_t row = 0; row < rows; ++row) {
        char* at = buffer;
        at += std::sprintf(at, "%s1%s", labels[row] > 0 ? "" : "-", vw ? " |" : "");
        for (int64_t i = indptr[row]; i < indptr[row + 1]; ++i) {
            *at++ = ' ';
            at = digits(at, static_cast<uint64_t>(indices[i]) + 1);
            if (values[i] == 1.0F) {
                if (!vw) {
                    std::memcpy(at, ":1", 2);
                    at += 2;
                }
            } else {
                at += std::sprintf(at, ":%.6g", static_cast<double>(values[i]));
            }
            if (at - buffer > (1 << 15)) {
                std::fwrite(buffer, 1, static_cast<size_t>(at - buffer), file);
                at = buffer;
            }
        }
        *at++ = '\n';
        std::fwrite(buffer, 1, static_cast<size_t>(at - buffer), file);
    }
    return std::fclose(file);
}
}
