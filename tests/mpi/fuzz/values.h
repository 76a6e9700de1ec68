// The values that a fuzzed call may be given for each of its parameters, good and bad, and the
// standard's error classes for a bad one.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/mpi/fuzz/signatures.h"
#include "tests/mpi/fuzz/world.h"

namespace ferry::mpi {

struct Value {
  enum class Quality {
    kGood,  // right, whatever good values the other arguments have
    kBad,   // an error, whatever good values the other arguments have
    kOdd,   // right or wrong, depending on the other arguments
  };
  Quality quality = Quality::kGood;
  std::string text;  // for messages
  uint64_t word = 0;
  // If not empty: the argument is the address of the parameter's slot, which holds these words.
  std::vector<uint64_t> elements;
  size_t element_bytes = 8;
};

struct Choices {
  std::vector<Value> values;  // at least one is good; the first good ones of all parameters go
                              // together
  std::set<int> classes;      // errors for a bad value
};

// Fails (a message, and the program ends) for a parameter that no rule knows.
Choices ChoicesOf(const CallSignature& signature, size_t parameter, World& world);

// Puts the value into place; returns the argument to pass.
uint64_t Place(const Value& value, size_t parameter, World& world);

}  // namespace ferry::mpi
