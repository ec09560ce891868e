#include "records/initial_and_final_loss.hpp"

#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>

#include "core/file_system.hpp"
#include "core/means.hpp"

namespace tpudist {

std::vector<InitialAndFinalLoss> read_loss_ends(const std::filesystem::path& metrics, int members) {
  std::vector<std::vector<double>> losses(static_cast<std::size_t>(members));
  if (std::filesystem::exists(metrics)) {
    std::istringstream lines(read_text_file(metrics));
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line, nullptr, false);
      if (!record.is_object() || record.value("kind", "") != "step") continue;
      const auto values = record.find("loss");
      if (values == record.end() || values->size() != losses.size()) continue;
      for (std::size_t m = 0; m < losses.size(); ++m) {
        if ((*values)[m].is_number()) losses[m].push_back((*values)[m].get<double>());
      }
    }
  }
  std::vector<InitialAndFinalLoss> ends(losses.size());
  for (std::size_t m = 0; m < losses.size(); ++m) {
    const std::span<const double> own = losses[m];
    if (std::ssize(own) < kLeastLosses) continue;
    const std::size_t tenth = own.size() / 10;
    ends[m] = {mean(own.first(tenth)), mean(own.last(tenth))};
  }
  return ends;
}

}  // namespace tpudist
