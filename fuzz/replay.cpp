// For compilers without libFuzzer: runs the seeds, then random mutations of them, for a given number of seconds.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int count, char** arguments) {
    if (count != 3) return std::fprintf(stderr, "usage: replay SECONDS SEEDS\n"), 2;
    std::vector<std::vector<std::uint8_t>> seeds;
    for (const auto& entry : std::filesystem::directory_iterator(arguments[2])) {
        std::ifstream file(entry.path(), std::ios::binary);
        seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
        LLVMFuzzerTestOneInput(seeds.back().data(), seeds.back().size());
    }
    if (seeds.empty()) return std::fprintf(stderr, "replay: no seeds in %s\n", arguments[2]), 2;
    const char bytes[] = "0123456789.:+-eE \t\n\r#nacostqid\0\xff";
    std::mt19937_64 random(1);
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t runs = 0;
    while (std::chrono::steady_clock::now() - start < std::chrono::seconds(std::atoi(arguments[1]))) {
        std::vector<std::uint8_t> input = seeds[random() % seeds.size()];
        if (random() % 4 == 0) {
            const auto& other = seeds[random() % seeds.size()];
            input.insert(input.end(), other.begin(), other.end());
        }
        for (std::uint64_t changes = random() % 8; changes-- && !input.empty();) {
            const std::size_t at = random() % input.size();
            switch (random() % 4) {
                case 0:
                    input[at] = static_cast<std::uint8_t>(bytes[random() % (sizeof bytes - 1)]);
                    break;
                case 1:
                    input.erase(input.begin() + static_cast<std::ptrdiff_t>(at));
                    break;
                case 2:
                    input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::uint8_t>(random()));
                    break;
                default:
                    input.resize(at);
            }
        }
        LLVMFuzzerTestOneInput(input.data(), input.size());
        ++runs;
    }
    std::printf("Done %llu runs, nothing broken\n", static_cast<unsigned long long>(runs));
}
