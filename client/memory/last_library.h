// Finds the library that the dynamic linker has loaded last. When the linker loads another one, it
// stores that one's place behind this one, in a word that costs a nanosecond to look at.
//
// Calling thread: one at a time. Find takes the dynamic linker's locks.
#pragma once

namespace ferry::client {

class LastLibrary {
 public:
  LastLibrary() = default;
  ~LastLibrary();
  LastLibrary(const LastLibrary&) = delete;
  LastLibrary& operator=(const LastLibrary&) = delete;

  // Finds the library that was loaded last, and holds it, so that its word stays, until Find finds
  // another. Returns the word, which is null until a later library is loaded; or returns null if
  // the last library cannot be found.
  const void* const* Find();

 private:
  void* handle_ = nullptr;
};

}  // namespace ferry::client
