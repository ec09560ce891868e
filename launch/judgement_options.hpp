#pragma once

#include <string>

#include "ensemble/judgement.hpp"
#include "launch/scoring_options.hpp"

namespace tpudist {

// The options of commands that combine members.
struct JudgementArguments {
  CombinationArguments combine;
  std::string select = "all";
  bool keep_all = false;

  // Throws as CombinationArguments::combination.
  JudgementOptions options() const;
  // All values as one text, which must be equal on all ranks.
  std::string to_text() const;
};

// Adds --select, --keep-all, and the options of add_combination_options. `arguments` hold the
// defaults and must outlive the command.
void add_judgement_options(Command command, JudgementArguments& arguments);

}  // namespace tpudist
