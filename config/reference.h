// The options table as text for people. Pure functions; any thread.
#pragma once

#include <string>

namespace ferry::config {

// The text of config/ferryd.toml: every option with its help and its default, commented out.
std::string DefaultToml();

// The tables of docs/configuration.md.
std::string OptionsMarkdown();

// The options' part of the manual page ferryd.toml(5), in mdoc(7).
std::string OptionsMan();

// One paragraph per flag, for --help.
std::string FlagsHelp();

}  // namespace ferry::config
