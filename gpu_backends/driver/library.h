// A vendor's library, opened at run time, so that one build of Ferry runs with any vendor's library
// or none.
//
// Calling thread: one, until it is open.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "common/status.h"

namespace ferry::gpu {

// One row of a backend's table of functions.
struct Symbol {
  const char* name;
  void** address;  // null afterwards: an optional one that the library does not have
  bool required;

  template <typename Function>
  static Symbol Required(const char* name, Function** function) {
    return {name, reinterpret_cast<void**>(function), true};
  }
  template <typename Function>
  static Symbol Optional(const char* name, Function** function) {
    return {name, reinterpret_cast<void**>(function), false};
  }
};

// Stays open until the process ends: drivers leave threads and exit handlers behind.
class Library {
 public:
  // Opens the first of `names` that is loaded already, else the first that the dynamic linker
  // finds; or the file `path` if it is not empty. kNotFound, with the linker's words on each, if
  // none can be opened. `vendor` names the library in the message.
  static StatusOr<Library> Open(std::string_view vendor, std::string_view path,
                                std::initializer_list<const char*> names);

  // Fills the table. kUnsupported, naming all of them, where required functions are missing.
  Status Resolve(std::initializer_list<Symbol> symbols) const;
  // Returns the address of a symbol; null if there is none.
  void* Find(const char* symbol) const;

  const std::string& name() const { return name_; }

 private:
  Library(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}

  void* handle_;
  std::string name_;
};

}  // namespace ferry::gpu
