#include "launch/judgement_options.hpp"

#include <fmt/format.h>

namespace tpudist {

JudgementOptions JudgementArguments::options() const {
  JudgementOptions options;
  options.combination = combine.combination();
  options.keep_all = keep_all;
  options.greedy = select == "greedy";
  return options;
}

std::string JudgementArguments::to_text() const {
  return fmt::format("{} {} {} {}", combine.rule, combine.temperature, select,
                     keep_all ? "keep" : "reject");
}

void add_judgement_options(Command command, JudgementArguments& arguments) {
  add_combination_options(command, arguments.combine);
  command
      .add_option("--select", arguments.select,
                  "all, or greedy: choose members by their scores, if that is worth it on model "
                  "families left out")
      .one_of({"all", "greedy"})
      .show_default();
  command.add_flag("--keep-all", arguments.keep_all, "Combine members that the rule rejects, too");
}

}  // namespace tpudist
