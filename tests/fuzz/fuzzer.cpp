// The program tpudist_fuzz of libFuzzer (preset `fuzz`):
//
//     tpudist_fuzz --targets                                    prints the names of all targets
//     tpudist_fuzz --target=NAME CORPUS [options of libFuzzer]
//
// The second writes the seeds of the target into the folder CORPUS, then mutates what is there. With a file in
// place of the folder it runs that once.

#include <spdlog/spdlog.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "tests/fuzz/fuzz_target.hpp"

namespace {

const tpudist::test::FuzzTarget* target = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kOption = "--target=";
  std::filesystem::path corpus;
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    for (const auto& own : tpudist::test::fuzz_targets()) {
      if (word == std::string(kOption) + std::string(own.name)) target = &own;
    }
    if (!word.starts_with('-') && corpus.empty()) corpus = word;
  }
  const bool list = *argc == 2 && (*argv)[1] == std::string_view("--targets");
  if (list) {
    for (const auto& own : tpudist::test::fuzz_targets()) fmt::print("{}\n", own.name);
  } else if (!target) {
    fmt::print(stderr, "say --target=NAME, with one of the names that --targets prints\n");
  }
  if (list || !target) std::exit(list ? 0 : 2);
  spdlog::set_level(spdlog::level::off);
  if (!std::filesystem::is_directory(corpus)) return 0;
  int number = 0;
  for (const std::string& seed : target->seeds())
    std::ofstream(corpus / fmt::format("seed-{:03}", number++), std::ios::binary) << seed;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  target->read({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
