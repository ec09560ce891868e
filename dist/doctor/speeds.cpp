#include "dist/doctor/doctor.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>

#include "core/numbers.hpp"
#include "dist/collectives/device_memory.hpp"

namespace tpudist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLargest = std::int64_t{64} << 20;
constexpr std::int64_t kTraffic = std::int64_t{256}
                                  << 20;  // bytes for each size, within 5 to 200 calls
constexpr std::size_t kCopied = std::size_t{64} << 20;
constexpr int kCopies = 5;
constexpr int kWarmUp = 2;
constexpr std::chrono::minutes kPatience{5};

// Host memory for a communicator, or memory of the current device.
class Floats {
 public:
  Floats(MemoryKind kind, std::size_t count) {
    if (kind == MemoryKind::host) {
      host_.assign(count, 0.0f);
    } else {
      device_ = DeviceBuffer(count * sizeof(float));
      const std::vector<float> zeros(count, 0.0f);
      copy_device_bytes(device_.as<float>().data(), zeros.data(), device_.bytes());
    }
  }
  std::span<float> span() { return host_.empty() ? device_.as<float>() : std::span(host_); }

 private:
  std::vector<float> host_;
  DeviceBuffer device_;
};

// Returns eight times the size, but the largest size as the last one.
std::int64_t next_size(std::int64_t bytes) {
  return bytes < kLargest ? std::min(8 * bytes, kLargest) : kLargest + 1;
}

double time_size(Communicator& communicator, std::span<float> data) {
  const auto bytes = static_cast<std::int64_t>(data.size_bytes());
  const auto calls = std::clamp<std::int64_t>(kTraffic / bytes, 5, 200);
  std::vector<double> seconds;
  communicator.barrier();
  for (std::int64_t i = 0; i < calls + kWarmUp; ++i) {
    const auto begin = Clock::now();
    communicator.all_reduce(data, ReduceOp::sum);
    if (i >= kWarmUp) seconds.push_back(seconds_since(begin));
  }
  return upper_median(std::move(seconds));
}

// Bytes read and written a second, by the calling thread.
double time_copies(std::vector<std::byte>& from, std::vector<std::byte>& to) {
  std::vector<double> seconds;
  for (int i = 0; i < kCopies; ++i) {
    from[i] = std::byte{1};
    const auto begin = Clock::now();
    std::memcpy(to.data(), from.data(), kCopied);
    seconds.push_back(seconds_since(begin));
  }
  return 2.0 * static_cast<double>(kCopied) / std::max(upper_median(std::move(seconds)), 1e-9);
}

}  // namespace

double upper_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::vector<JobFacts::AllReduceSpeed> time_all_reduce(Communicator& communicator) {
  std::vector<JobFacts::AllReduceSpeed> speeds;
  if (communicator.size() == 1) return speeds;
  const bool host = communicator.memory() == MemoryKind::host;
  Floats floats(communicator.memory(), static_cast<std::size_t>(kLargest) / sizeof(float));
  for (std::int64_t bytes = 8; bytes <= kLargest; bytes = next_size(bytes)) {
    const double seconds = time_size(
        communicator, floats.span().first(static_cast<std::size_t>(bytes) / sizeof(float)));
    speeds.push_back({host ? "host" : "device", bytes, seconds});
  }
  return speeds;
}

std::vector<JobFacts::MemorySpeed> time_memory(Communicator& world, Communicator& node,
                                               int number) {
  std::vector<std::byte> from(kCopied, std::byte{1}), to(kCopied, std::byte{2});
  double alone = 0;
  // The others sleep meanwhile: they may share cores with the rank that copies.
  world.barrier();
  if (node.rank() == 0) alone = time_copies(from, to);
  node.wait_for_all(kPatience);
  world.wait_for_all(kPatience);
  const double together = time_copies(from, to);
  const std::vector<double> mine{static_cast<double>(number), alone, together};
  const std::vector<double> all = all_gather_variable<double>(world, std::span(mine));
  std::vector<JobFacts::MemorySpeed> speeds;
  for (std::size_t i = 0; i < all.size(); i += 3) {
    const int at = static_cast<int>(all[i]);
    auto speed = std::ranges::find(speeds, at, &JobFacts::MemorySpeed::node);
    if (speed == speeds.end()) speed = speeds.insert(speed, {at, 0, 0, 0});
    ++speed->ranks;
    speed->alone += all[i + 1];
    speed->together += all[i + 2];
  }
  return speeds;
}

}  // namespace tpudist
