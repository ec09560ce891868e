#pragma once

#include <string>

#include "ensemble/judgement.hpp"
#include "launch/scoring_options.hpp"

namespace tpudist {

// How the commands that combine members are told to.
struct JudgementArguments {
  CombinationArguments combine;
  std::string select = "all";
  bool keep_all = false;

  // Throws as CombinationArguments::combination.
  JudgementOptions options() const;
  // What all ranks must have in common, as one text.
  std::string to_text() const;
};

// Adds --select, --keep-all, and what add_combination_options adds. `arguments` hold the defaults and must outlive
// the command.
void add_judgement_options(Command command, JudgementArguments& arguments);

}  // namespace tpudist
