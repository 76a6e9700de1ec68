// Collects the values of one parameter.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/mpi/fuzz/kinds.h"
#include "tests/mpi/fuzz/values.h"

namespace ferry::mpi {

template <typename T>
uint64_t Word(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<uint64_t>(value);
  } else {
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

class ValueList {
 public:
  using Numbers = std::initializer_list<int64_t>;

  ValueList(size_t element_bytes, std::set<int> classes) : element_bytes_(element_bytes) {
    choices_.classes = std::move(classes);
  }

  template <typename T>
  ValueList& Good(const char* text, T value) {
    return Add(Value::Quality::kGood, text, Word(value));
  }
  template <typename T>
  ValueList& Bad(const char* text, T value) {
    return Add(Value::Quality::kBad, text, Word(value));
  }
  template <typename T>
  ValueList& Odd(const char* text, T value) {
    return Add(Value::Quality::kOdd, text, Word(value));
  }
  ValueList& Good(Numbers numbers) { return AddAll(Value::Quality::kGood, numbers); }
  ValueList& Bad(Numbers numbers) { return AddAll(Value::Quality::kBad, numbers); }
  ValueList& Odd(Numbers numbers) { return AddAll(Value::Quality::kOdd, numbers); }
  // Adds the address of the elements.
  ValueList& At(Value::Quality quality, const char* text, std::vector<uint64_t> elements) {
    choices_.values.push_back({quality, text, 0, std::move(elements), element_bytes_});
    return *this;
  }
  ValueList& GoodAt(const char* text, std::vector<uint64_t> elements) {
    return At(Value::Quality::kGood, text, std::move(elements));
  }
  ValueList& BadAt(const char* text, std::vector<uint64_t> elements) {
    return At(Value::Quality::kBad, text, std::move(elements));
  }
  ValueList& OddAt(const char* text, std::vector<uint64_t> elements) {
    return At(Value::Quality::kOdd, text, std::move(elements));
  }
  ValueList& BadNull() { return Bad("null", uint64_t{0}); }
  ValueList& OddNull() { return Odd("null", uint64_t{0}); }

  Choices Take() { return std::move(choices_); }

 private:
  ValueList& AddAll(Value::Quality quality, Numbers numbers) {
    for (const int64_t number : numbers) {
      Add(quality, std::to_string(number), Word(number));
    }
    return *this;
  }
  ValueList& Add(Value::Quality quality, std::string text, uint64_t word) {
    choices_.values.push_back({quality, std::move(text), word, {}, element_bytes_});
    return *this;
  }

  size_t element_bytes_;
  Choices choices_;
};

// Words that are not a handle of any object, with a text for each.
std::vector<std::pair<const char*, uint64_t>> WrongHandles(World& world, uint64_t null,
                                                           uint64_t freed);

// The values of parameters that only calls on files have. Empty for other kinds.
Choices FileChoices(Kind kind, World& world);

// The values of parameters that are handles, or addresses or arrays of them. Empty for other kinds.
Choices HandleChoices(Kind kind, World& world);

}  // namespace ferry::mpi
