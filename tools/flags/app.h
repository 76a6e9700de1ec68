// The parts that all tools with CLI11 share: --version, --completion, and messages about mistakes.
//
// Main thread only, before it starts others. CLI11 throws; each tool's main catches it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace ferry::tools {

// Gives `app`, once it has its own flags and commands, --version, which prints `version`, and
// --completion SHELL. Both end the parse with CLI::Success.
void AddInformation(CLI::App* app, const std::string& version);

// Names the words that the parse of `app` did not understand, with the nearest flag or command:
// "unknown word statsu; did you mean status?". Empty: it understood all words.
std::string ExplainUnknown(const CLI::App& app);

}  // namespace ferry::tools
