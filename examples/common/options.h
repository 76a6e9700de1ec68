// A command line whose options are named and documented where they are used.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "examples/common/process_grid.h"
#include "ferry/halo.h"

namespace examples {

class Options {
 public:
  // `usage`: how the program is started; the first line of --help.
  explicit Options(std::string usage) : usage_(std::move(usage)) {}

  // Adds an option. take(text) returns false for an invalid value; `wanted` describes the valid
  // ones. If `value` is empty, the option has none, and take gets "".
  using Take = std::function<bool(std::string_view text)>;
  void Add(std::string name, std::string value, std::string help, std::string wanted, Take take);
  // Add options of the usual kinds; the variable's present value is the default.
  void AddCount(std::string name, std::string help, int least, int* count);
  void AddText(std::string name, std::string value, std::string help, std::string* text);
  void AddFlag(std::string name, std::string help, bool* flag, bool meaning = true);

  // False when the program should end with `exit_code`: after --help, or after a mistake that was
  // reported, if `speak`.
  bool Parse(int argc, char** argv, bool speak, int* exit_code) const;

 private:
  struct Option {
    std::string name;
    std::string value;
    std::string help;
    std::string wanted;
    Take take;
  };
  void ShowHelp() const;

  std::string usage_;
  std::vector<Option> options_;
};

// "24x36" or "8x8x8": as many whole numbers from 1 as there are axes.
bool ReadAxes(std::string_view text, int axes, Triple* numbers);

// ready, standard, cpu or staged.
bool ReadSends(std::string_view text, ferry::Sends* sends);
const char* NameOf(ferry::Sends sends);
inline constexpr std::array<ferry::Sends, 4> kAllSends = {
    ferry::Sends::kReady, ferry::Sends::kStandard, ferry::Sends::kByCpu, ferry::Sends::kStaged};

}  // namespace examples
