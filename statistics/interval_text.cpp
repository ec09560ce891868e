#include "statistics/interval_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace tpudist {
namespace {

std::string line(std::string_view question, std::string_view answer) {
  return fmt::format("{:<31}  {}", question, answer);
}

std::string count(int number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

constexpr std::string_view kTheseGraphs = "these graphs, other runs",
                           kOtherFamilies = "other families, other runs",
                           kThisModel = "other families, this model only",
                           kMembers = "other members of this training";

}  // namespace

std::string interval_text(const Interval& interval) {
  return fmt::format("{:.4f} ({:.4f} to {:.4f}, t({:.3g}))", interval.value, interval.low,
                     interval.high, interval.degrees);
}

std::string family_line(const FamilyInterval& found) {
  return line(
      found.runs == 1 ? kThisModel : kOtherFamilies,
      fmt::format("{}; {} of {}{}{}{}", interval_text(found.interval),
                  count(found.graphs, "graph", "graphs"),
                  count(found.families, "family", "families"),
                  found.collections > 1 ? fmt::format(" in {} collections", found.collections) : "",
                  found.runs > 1 ? fmt::format(", {} runs", found.runs) : "",
                  found.bootstrap ? ", bootstrap" : ""));
}

std::string run_line(const Interval& interval, const std::string& source) {
  return line(kTheseGraphs, interval_text(interval) + "; " + source);
}

std::string member_line(const Interval& interval, const std::string& source) {
  return line(kMembers, interval_text(interval) + "; " + source);
}

std::string one_training_line() {
  return "one training says nothing of others; train again with another seed.init and "
         "seed.order";
}

std::string rare_failure_line(int families) {
  return fmt::format("an interval from {} families cannot see failures rarer than about 1 in {}",
                     families, families);
}

std::string no_run_line(const std::string& reason) {
  return line(kTheseGraphs, "not enough: " + reason);
}

std::string no_family_line() {
  return line("other families", "not enough: all graphs are of one family");
}

}  // namespace tpudist
