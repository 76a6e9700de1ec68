// The jobs by which `ferryctl tune` measures: programs of ours under ferryrun.
//
// Main thread.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

// Finds a file beside this program, as installed or as built: `places` are paths from its folder.
// Empty: it is in none of them.
std::string FindBeside(std::initializer_list<const char*> places);

// Splits a text into its words, at spaces.
std::vector<std::string> WordsOf(const std::string& text);

// Runs the program to its end, and returns what it wrote to its standard output. kSystem: it
// failed, and has said why on standard error.
StatusOr<std::string> RunMeasuringJob(const std::vector<std::string>& arguments);

}  // namespace ferry::tools
