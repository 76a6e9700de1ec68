#include <mpi.h>

#include <climits>
#include <string>
#include <utility>

#include "tests/mpi/fuzz/value_list.h"

namespace ferry::mpi {
namespace {

// ---- Handles ------------------------------------------------------------------------------------

Choices Files(Kind kind, World& world) {
  const bool in_slot = kind == Kind::kFileToClose;
  // The other classes are those of files that are open, but not for the call.
  ValueList list(8, {MPI_ERR_FILE, MPI_ERR_ARG, MPI_ERR_IO, MPI_ERR_ACCESS, MPI_ERR_READ_ONLY,
                     MPI_ERR_UNSUPPORTED_OPERATION});
  const auto add = [&](Value::Quality quality, const char* text, MPI_File file) {
    if (in_slot) {
      list.At(quality, text, {Word(file)});
    } else if (quality == Value::Quality::kGood) {
      list.Good(text, file);
    } else {
      list.Odd(text, file);
    }
  };
  const WorldFiles& files = world.files();
  const auto begun = static_cast<int>(kind) - static_cast<int>(Kind::kFileToReadAtAllEnd);
  const bool is_end = begun >= 0 && begun < WorldFiles::kSplits;
  if (is_end) {
    list.Good("begun", files.begun[static_cast<size_t>(begun)]);
    list.Bad("nothing begun", files.open);
    list.Bad("another begun", files.begun[static_cast<size_t>(begun + 1) % files.begun.size()]);
  } else {
    add(Value::Quality::kGood, "a file", files.open);
    add(Value::Quality::kOdd, "to be read", files.read_only);
    add(Value::Quality::kOdd, "to be written", files.write_only);
    add(Value::Quality::kOdd, "a sequential one", files.sequential);
    add(Value::Quality::kOdd, "with a split collective", files.begun[0]);
  }
  if (kind == Kind::kFileOrNull) {
    list.Good("MPI_FILE_NULL", MPI_FILE_NULL);
  }
  if (in_slot) {
    list.BadNull();
  }
  auto wrong = WrongHandles(world, Word(MPI_FILE_NULL), Word(files.closed));
  wrong.emplace_back("a handle of another kind", Word(world.comm));
  for (const auto& [text, word] : wrong) {
    if (word == Word(MPI_FILE_NULL) && kind == Kind::kFileOrNull) {
      continue;
    }
    if (in_slot) {
      list.BadAt(text, {word});
    } else {
      list.Bad(text, word);
    }
  }
  return list.Take();
}

// ---- Numbers ------------------------------------------------------------------------------------

constexpr int64_t kFar = int64_t{1} << 40;

Choices Offsets(Kind kind) {
  ValueList list(8, {MPI_ERR_ARG, MPI_ERR_IO});
  switch (kind) {
    case Kind::kOffset:
      list.Good({0, 8}).Odd({kFar, INT64_MAX, INT64_MAX / 4}).Bad({-1, INT64_MIN});
      return list.Take();
    case Kind::kSeekOffset:
      return list.Good({0}).Odd({8, kFar, INT64_MAX, -1, INT64_MIN}).Take();
    case Kind::kFileSize:
      return list.Good({64}).Odd({0, kFar, INT64_MAX}).Bad({-1, INT64_MIN}).Take();
    case Kind::kAllocatedFileSize:  // a long one would take the disk's room
      return list.Good({64}).Odd({0, 100000}).Bad({-1, INT64_MIN}).Take();
    case Kind::kDisplacement:
      list.Good({0}).Odd({16, kFar, INT64_MAX}).Odd("current", MPI_DISPLACEMENT_CURRENT);
      return list.Bad({-1, INT64_MIN}).Take();
    default:
      return {};
  }
}

Choices Modes(Kind kind) {
  constexpr int kChanged = MPI_MODE_RDWR | MPI_MODE_CREATE;
  switch (kind) {
    case Kind::kAccessMode:
      return ValueList(4, {MPI_ERR_AMODE, MPI_ERR_FILE_EXISTS, MPI_ERR_NOT_SAME})
          .Good({kChanged, MPI_MODE_RDONLY, MPI_MODE_WRONLY, kChanged | MPI_MODE_APPEND})
          .Odd({kChanged | MPI_MODE_EXCL, kChanged | MPI_MODE_DELETE_ON_CLOSE,
                MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_MODE_RDWR | MPI_MODE_UNIQUE_OPEN})
          .Bad({0, MPI_MODE_RDONLY | MPI_MODE_WRONLY, MPI_MODE_RDONLY | MPI_MODE_CREATE,
                MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, -1, INT_MAX, INT_MIN})
          .Take();
    case Kind::kWhence:
      return ValueList(4, {MPI_ERR_ARG})
          .Good({MPI_SEEK_SET})
          .Odd({MPI_SEEK_CUR, MPI_SEEK_END})
          .Bad({-1, INT_MAX, INT_MIN, MPI_MODE_RDONLY + 4096})
          .Take();
    default:
      return {};
  }
}

// ---- Texts and functions ------------------------------------------------------------------------

void User(void*) {}

// A name that was not registered before: such names stay for the life of the process.
const char* NewName() {
  static std::string name;
  static int number = 0;
  name = "representation " + std::to_string(++number);
  return name.c_str();
}

Choices Names(Kind kind, World& world) {
  static const std::string endless(5000, 'x');
  switch (kind) {
    case Kind::kFileName:
      return ValueList(8, {MPI_ERR_ARG, MPI_ERR_BAD_FILE, MPI_ERR_NO_SUCH_FILE, MPI_ERR_IO})
          .Good("of a file", world.file_name())
          .BadNull()
          .Bad("\"\"", "")
          .Bad("of a directory", "/")
          .Bad("of nothing in a file", "/dev/null/file")
          .Bad("5,000 bytes", endless.c_str())
          .Take();
    case Kind::kViewRepresentation:
      return ValueList(8, {MPI_ERR_ARG, MPI_ERR_UNSUPPORTED_DATAREP})
          .Good("\"native\"", "native")
          .Good("\"external32\"", "external32")
          .BadNull()
          .Bad("\"\"", "")
          .Bad("5,000 bytes", endless.c_str())
          .Take();
    case Kind::kNewRepresentation:
      return ValueList(8, {MPI_ERR_ARG, MPI_ERR_DUP_DATAREP})
          .Good("a new one", NewName())
          .BadNull()
          .Bad("\"native\"", "native")
          .Bad("5,000 bytes", endless.c_str())
          .Take();
    case Kind::kFunctionOrNull:  // of representations that no view has: never called
      return ValueList(8, {}).Good("a function", &User).Good("null", uint64_t{0}).Take();
    default:
      return {};
  }
}

}  // namespace

Choices FileChoices(Kind kind, World& world) {
  switch (kind) {
    case Kind::kFile:
    case Kind::kFileOrNull:
    case Kind::kFileToClose:
    case Kind::kFileToReadAtAllEnd:
    case Kind::kFileToReadAllEnd:
    case Kind::kFileToReadOrderedEnd:
    case Kind::kFileToWriteAtAllEnd:
    case Kind::kFileToWriteAllEnd:
    case Kind::kFileToWriteOrderedEnd:
      return Files(kind, world);
    default:
      break;
  }
  for (Choices choices : {Offsets(kind), Modes(kind), Names(kind, world)}) {
    if (!choices.values.empty()) {
      return choices;
    }
  }
  return {};
}

}  // namespace ferry::mpi
