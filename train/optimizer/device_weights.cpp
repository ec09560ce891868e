#include "train/optimizer/device_weights.hpp"

#include <span>

#include "core/hash.hpp"
#include "models/kernels/flat_launches.hpp"

namespace tpudist {
namespace {

std::vector<FlatPlace> places_of(const ParameterTable& table,
                                 const std::vector<std::int64_t>& placed) {
  std::vector<FlatPlace> places;
  std::int32_t tensor = 0;
  for (std::size_t e = 0; e < table.entries().size(); ++e) {
    const ParameterEntry& entry = table.entries()[e];
    for (std::int64_t i = 0; i < entry.size(); i += 16)
      places.push_back({static_cast<std::int32_t>(entry.group),
                        static_cast<std::int32_t>(placed[e] + i), tensor});
    if (entry.group != ParameterGroup::statistics) ++tensor;
  }
  return places;
}

}  // namespace

DeviceWeights::DeviceWeights(const Network& network, HostWeights& host)
    : network_(network),
      device_(*network.device()),
      host_(host),
      members_(static_cast<int>(host.optimizer.steps().size())),
      length_(network.parameters().length()),
      parameters_(host.flat),
      clip_(host.optimizer.tensor_clip()) {
  const std::vector<std::int64_t> placed = placed_offsets(network.parameters());
  const std::vector<FlatPlace> places = places_of(network.parameters(), placed);
  placed_length_ = placed.back();
  const auto norm_parts = host.optimizer.norm_parts();
  const auto members = static_cast<std::size_t>(members_);
  places_ = device_.allocate(places.size() * sizeof(FlatPlace));
  parts_ = device_.allocate(norm_parts.size_bytes());
  sums_ = device_.allocate(members * norm_parts.size() * kNormLanes * sizeof(LaneSums));
  totals_ = device_.allocate(members * sizeof(MemberTotals));
  coefficients_ = device_.allocate(members * kParameterGroups * sizeof(StepCoefficients));
  shares_ = device_.allocate(members * sizeof(float));
  uploaded(places, places_);
  uploaded(std::vector(norm_parts.begin(), norm_parts.end()), parts_);
  if (clip_.largest == 0) return;
  const std::vector<NormPart> parts(clip_.parts, clip_.parts + clip_.count);
  const std::size_t sums = members * parts.size() * kNormLanes * sizeof(LaneSums),
                    scales = members * static_cast<std::size_t>(clip_.tensors) * sizeof(float);
  tensor_parts_ = device_.allocate(parts.size() * sizeof(NormPart));
  tensor_sums_ = device_.allocate(sums);
  tensor_scales_ = device_.allocate(scales);
  clip_.parts = uploaded(parts, tensor_parts_);
  clip_.sums = static_cast<LaneSums*>(tensor_sums_.get());
  clip_.scales = static_cast<float*>(tensor_scales_.get());
}

std::uint64_t DeviceWeights::bytes(const ParameterTable& table, int members, int averages) {
  const std::int64_t floats = (3 + averages) * table.length() + placed_offsets(table).back();
  return static_cast<std::uint64_t>(members * floats) * sizeof(float);
}

template <typename T>
const T* DeviceWeights::uploaded(const std::vector<T>& values, const std::shared_ptr<void>& to) {
  const HostPart part{values.data(), 0, values.size() * sizeof(T)};
  device_.upload(std::span(&part, 1), part.bytes, to.get());
  return static_cast<const T*>(to.get());
}

float* DeviceWeights::list(int index) const {
  return static_cast<float*>(lists_.get()) + index * members_ * length_;
}

void DeviceWeights::bring_up() {
  if (newest_ != Newest::host) return;
  std::vector<HostPart> parts;
  std::size_t end = 0;
  const auto add = [&](std::span<const float> values) {
    parts.push_back({values.data(), end, values.size_bytes()});
    end += values.size_bytes();
  };
  add(host_.flat);
  add(host_.optimizer.first_moment());
  add(host_.optimizer.second_moment());
  add(host_.average.values());
  if (!lists_) lists_ = device_.allocate(end);
  device_.upload(parts, end, lists_.get());
  parameters_ = network_.place(host_.flat);
  newest_ = Newest::both;
}

void DeviceWeights::bring_down() {
  if (newest_ != Newest::device) return;
  const std::span<float> lists[] = {host_.flat, host_.optimizer.first_moment(),
                                    host_.optimizer.second_moment(), host_.average.values()};
  for (int i = 0; i < this->lists(); ++i)
    device_.download(list(i), lists[i].size_bytes(), lists[i].data());
  newest_ = Newest::both;
}

const Parameters& DeviceWeights::parameters() {
  bring_up();
  return parameters_;
}

DeviceWeights::LossAndNorm DeviceWeights::losses_and_norms(const float* gradients,
                                                           std::int64_t stride) {
  device_.select();
  auto* const totals = static_cast<MemberTotals*>(totals_.get());
  launch_losses_and_norms(members_, length_, static_cast<const NormPart*>(parts_.get()),
                          std::ssize(host_.optimizer.norm_parts()), gradients, stride, list(0),
                          static_cast<LaneSums*>(sums_.get()), totals, nullptr);
  std::vector<MemberTotals> values(members_);
  device_.download(totals, values.size() * sizeof(values[0]), values.data());
  LossAndNorm all{{}, {}, hash64(std::as_bytes(std::span(values)))};
  for (const MemberTotals& member : values) {
    all.loss.push_back(member.loss);
    all.norm.push_back(member.norm);
  }
  return all;
}

void DeviceWeights::step(const float* gradients, std::int64_t stride,
                         const std::vector<double>& norms, const std::vector<bool>& active,
                         double rate_factor) {
  bring_up();
  const StepCoefficients* const coefficients =
      uploaded(host_.optimizer.begin_step(norms, active, rate_factor), coefficients_);
  newest_ = Newest::device;
  const SteppedBuffers buffers{length_,
                               list(0),
                               list(1),
                               list(2),
                               parameters_.placed->data(),
                               placed_length_,
                               static_cast<const FlatPlace*>(places_.get())};
  device_.select();
  launch_optimizer_step(members_, buffers, gradients, stride, coefficients, kParameterGroups, clip_,
                        nullptr);
}

void DeviceWeights::add_point(const std::vector<bool>& active, std::int64_t done,
                              std::int64_t steps) {
  const std::vector<float> shares = host_.average.begin_point(active, done, steps);
  if (shares.empty()) return;
  bring_up();
  newest_ = Newest::device;
  device_.select();
  launch_average_point(members_, length_, uploaded(shares, shares_), list(0), list(3), nullptr);
}

}  // namespace tpudist
