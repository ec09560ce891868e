#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/random.hpp"
#include "statistics/intervals/distributions.hpp"

namespace tpudist::test {

// Made-up measurements of one graph whose true times are known: about 1e7 ns, different by some
// percent, with log-normal noise. Two configurations of three are measured once or twice, or, with
// few repeats, one of five two or three times and the others once.
struct NoisyGraph {
  // Times that vary smoothly; times on 25 levels, some close together; smooth times of which fast
  // ones are repeated up to 20 times; smooth times whose noise has two humps, grows with the time,
  // has Student's distribution (3 degrees), or the exponential distribution.
  enum Kind { smooth, levels, preferential, two_humps, rising, student, exponential };

  std::vector<double> times;         // [n] measured, in random order
  std::vector<std::int32_t> config;  // [n]
  // [n] the true order: equal for equal configurations, strict otherwise (within a level at
  // random).
  std::vector<double> truth;

  NoisyGraph(Kind kind, int configs, double deviation, std::uint64_t key,
             bool few_repeats = false) {
    CounterRng random(key);
    std::vector<double> level;
    for (int i = 0; i < 25; ++i) level.push_back(random.uniform(0, 0.12));
    std::vector<double> log_time, order;
    for (int c = 0; c < configs; ++c) {
      const double smooth_time = 0.02 * random.normal();
      log_time.push_back(kind == levels ? level[random.below(level.size())] : smooth_time);
      // Random numbers far below any noise break the ties of levels.
      order.push_back(log_time.back() + 1e-9 * random.uniform());
    }
    for (int c = 0; c < configs; ++c) {
      const double fast = 1 / (1 + std::exp(log_time[c] / 0.01));
      const double often = kind == preferential ? 20 * fast * fast * fast * random.uniform()
                                                : 3 * random.uniform() * random.uniform();
      const double often_six = kind != preferential && c % 20 == 0 ? 6 : 0;
      const int few = c % 5 == 0 ? 2 + c / 5 % 2 : 1;
      const int rows = few_repeats ? few : 1 + static_cast<int>(often + often_six);
      for (int r = 0; r < rows; ++r) config.push_back(c);
    }
    random.shuffle(std::span(config));
    for (const std::int32_t c : config) {
      // A factor of 7 from two standard deviations of the times to two; its root mean square is 1.
      const double growth = kind == rising ? std::exp(log_time[c] / 0.04 - 0.25) : 1;
      times.push_back(
          std::round(1e7 * std::exp(log_time[c] + deviation * growth * noise(kind, random))));
      truth.push_back(order[c]);
    }
  }

  // [n] the mean measured time of each row's configuration.
  std::vector<double> means() const {
    std::vector<double> sum(1 + *std::ranges::max_element(config)), count(sum.size());
    for (std::size_t i = 0; i < times.size(); ++i) sum[config[i]] += times[i], ++count[config[i]];
    std::vector<double> result;
    for (const std::int32_t c : config) result.push_back(sum[c] / count[c]);
    return result;
  }

  // A number with mean 0 and variance 1.
  static double noise(Kind kind, CounterRng& random) {
    if (kind == student) return t_quantile(std::max(random.uniform(), 1e-12), 3) / std::sqrt(3.0);
    if (kind == exponential) return -std::log(1 - random.uniform()) - 1;
    if (kind != two_humps) return random.normal();
    return (random.below(2) ? 1 : -1) * std::sqrt(1 - 0.0625) + 0.25 * random.normal();
  }

  static std::string_view name_of(Kind kind) {
    switch (kind) {
      case smooth:
        return "smooth";
      case levels:
        return "on 25 levels";
      case preferential:
        return "preferentially repeated";
      case two_humps:
        return "smooth, noise of two humps";
      case rising:
        return "smooth, noise grows with the time";
      case student:
        return "smooth, noise of t(3)";
      default:
        return "smooth, exponential noise";
    }
  }
};

}  // namespace tpudist::test
