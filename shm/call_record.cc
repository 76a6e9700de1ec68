#include "shm/call_record.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "shm/atomic.h"

namespace ferry::shm {
namespace {

struct Line {
  const char* text = nullptr;
  CallKind kind = CallKind::kNone;
};

constexpr std::array<Line, kMostCallNames> MakeLines() {
  using enum CallKind;
  std::array<Line, kMostCallNames> lines;
#define FERRY_CALL_LINE(number, constant, text, kind) lines[number] = {text, kind};
  FERRY_CALLS(FERRY_CALL_LINE)
#undef FERRY_CALL_LINE
  return lines;
}
constexpr std::array<Line, kMostCallNames> kLines = MakeLines();

// A rank would have to begin a call at each of them.
constexpr int kTries = 16;

const Line& LineOf(CallName name) { return kLines[static_cast<uint16_t>(name) % kMostCallNames]; }

CallName Exactly(std::string_view text) {
  for (size_t i = 1; i < kLines.size(); ++i) {
    if (kLines[i].text != nullptr && text == kLines[i].text) {
      return static_cast<CallName>(i);
    }
  }
  return CallName::kNone;
}

bool DropEnd(std::string_view end, std::string_view* text) {
  const bool has_end = text->ends_with(end);
  if (has_end) {
    text->remove_suffix(end.size());
  }
  return has_end;
}

// The functions of OpenSHMEM for types have the type in the middle: the line with the longest end
// in common is theirs.
CallName ByEnd(std::string_view text) {
  constexpr std::string_view kPrefix = "shmem_";
  while (!text.empty() && text.back() >= '0' && text.back() <= '9') {
    text.remove_suffix(1);  // the width of put64
  }
  CallName found = CallName::kNone;
  size_t longest = 0;
  for (size_t i = 1; i < kLines.size(); ++i) {
    const std::string_view line = kLines[i].text != nullptr ? kLines[i].text : "";
    if (!line.starts_with(kPrefix) || line.size() <= longest) {
      continue;
    }
    const std::string_view end = line.substr(kPrefix.size() - 1);  // with its underscore
    if (text.ends_with(end)) {
      found = static_cast<CallName>(i);
      longest = line.size();
    }
  }
  return found;
}

// Reductions are named after their operations.
bool IsReduction(std::string_view text) {
  constexpr std::string_view kEnds[] = {"_to_all",     "_sum_reduce", "_prod_reduce",
                                        "_max_reduce", "_min_reduce", "_and_reduce",
                                        "_or_reduce",  "_xor_reduce"};
  return std::any_of(std::begin(kEnds), std::end(kEnds),
                     [text](std::string_view end) { return text.ends_with(end); });
}

uint64_t Word(const CallRecordLayout& record, size_t offset_bytes) {
  const auto* const words = reinterpret_cast<const uint64_t*>(&record);
  // Pairs with CallBoard::Write: a reader of a new word finds that sequence has become odd.
  return LoadAcquire(words[offset_bytes / sizeof(uint64_t)]);
}

// Copies a record whole. False: it changed meanwhile.
bool Copy(const CallRecordLayout& record, CallRecordLayout* copy) {
  const uint64_t before = LoadAcquire(record.sequence);  // pairs with CallBoard::Write
  if (before % 2 != 0) {
    return false;
  }
  uint64_t words[sizeof(CallRecordLayout) / sizeof(uint64_t)];
  for (size_t offset = 0; offset < sizeof(words); offset += sizeof(uint64_t)) {
    words[offset / sizeof(uint64_t)] = Word(record, offset);
  }
  std::memcpy(static_cast<void*>(copy), words, sizeof(words));
  return LoadRelaxed(record.sequence) == before;
}

int32_t CheckedRank(int32_t rank, uint32_t job_size) {
  return rank == kCallAnyRank || (rank >= 0 && static_cast<uint32_t>(rank) < job_size)
             ? rank
             : kCallNoRank;
}

std::string CheckedText(const char (&bytes)[kCallGroupNameBytes]) {
  std::string text(bytes, strnlen(bytes, sizeof(bytes)));
  for (char& c : text) {
    c = c >= ' ' && c <= '~' ? c : '?';
  }
  return text;
}

void Take(const CallRecordLayout& copy, uint32_t job_size, CallView* view) {
  const auto has = [&copy](CallFlag flag) { return (copy.flags & flag) != 0; };
  view->generation = copy.generation;
  view->name = static_cast<CallName>(copy.name);
  view->inner = IsCallName(copy.inner) ? static_cast<CallName>(copy.inner) : CallName::kNone;
  view->begin_ns = copy.begin_ns;
  view->thread = copy.thread;
  view->has_group = has(kCallHasGroup);
  view->has_tag = has(kCallHasTag);
  view->any_tag = has(kCallAnyTag);
  view->has_bytes = has(kCallHasBytes);
  view->has_number = has(kCallHasNumber);
  view->has_object = has(kCallHasObject);
  view->is_peer_root = has(kCallPeerIsRoot);
  view->is_nonblocking = has(kCallNonblocking);
  if (view->has_group) {
    view->group = copy.group;
    view->group_name = has(kCallHasFile) ? "" : CheckedText(copy.group_name);
  }
  view->file = has(kCallHasFile) ? CheckedText(copy.group_name) : "";
  view->peer = CheckedRank(copy.peer, job_size);
  view->peer_in_group = view->peer == kCallNoRank ? kCallNoRank : copy.peer_in_group;
  view->tag = copy.tag;
  view->bytes = copy.bytes;
  view->number = copy.number;
  view->object = copy.object;
  view->missing = std::max(CheckedRank(copy.missing, job_size), kCallNoRank);
  view->missing_count = view->missing == kCallNoRank ? 0 : std::min(copy.missing_count, job_size);
}

std::string BytesText(uint64_t bytes) { return std::to_string(bytes) + " B"; }

std::string RankText(const CallView& view) {
  const std::string rank = std::to_string(view.peer_in_group);
  const bool differs = view.peer_in_group != view.peer;
  return "rank " + rank + (differs ? " (" + std::to_string(view.peer) + " of the job)" : "");
}

const char* BeforePeer(const CallView& view) {
  switch (view.name) {
    case CallName::kMpiRecv:
    case CallName::kMpiMrecv:
    case CallName::kMpiProbe:
    case CallName::kMpiMprobe:
    case CallName::kFerryRecv:
    case CallName::kFerryProbe:
      return "from ";
    case CallName::kMpiSendrecv:
    case CallName::kMpiSendrecvReplace:
      return "with ";
    default:
      return KindOf(view.name) == CallKind::kPointToPoint ? "to " : "with ";
  }
}

}  // namespace

// ---- Names --------------------------------------------------------------------------------------

const char* CallText(CallName name) {
  const char* const text = LineOf(name).text;
  return text != nullptr ? text : "a call";
}

CallKind KindOf(CallName name) { return LineOf(name).kind; }

bool IsCallName(uint16_t number) {
  return number < kMostCallNames && kLines[number].text != nullptr;
}

CallName CallNamed(std::string_view text) {
  (void)DropEnd("_c", &text);
  CallName found = Exactly(text);
  if (found != CallName::kNone) {
    return found;
  }
  constexpr std::string_view kMpi = "MPI_";
  if (!text.starts_with(kMpi)) {
    return IsReduction(text) ? CallName::kShmemReduce : ByEnd(text);
  }
  if (constexpr std::string_view kFile = "MPI_File_"; text.starts_with(kFile)) {
    (void)(DropEnd("_begin", &text) || DropEnd("_end", &text));
    std::string blocking(text);
    if (text.substr(kFile.size()).starts_with('i')) {  // iread, iwrite
      blocking.erase(kFile.size(), 1);
    }
    return Exactly(blocking);
  }
  // A nonblocking or persistent collective.
  std::string blocking(text);
  if (DropEnd("_init", &text)) {
    blocking = text;
  } else if (text.size() > kMpi.size() + 1 && text[kMpi.size()] == 'I') {
    blocking.erase(kMpi.size(), 1);
    blocking[kMpi.size()] = static_cast<char>(blocking[kMpi.size()] - 'a' + 'A');
  }
  found = Exactly(blocking);
  return KindOf(found) == CallKind::kCollective ? found : CallName::kNone;
}

// ---- Records ------------------------------------------------------------------------------------

CallLook ReadCall(const CallRecordLayout& record, uint32_t job_size, CallView* view) {
  for (int i = 0; i < kTries; ++i) {
    CallRecordLayout copy;
    if (!Copy(record, &copy)) {
      continue;
    }
    if (!IsCallName(copy.name)) {
      return CallLook::kNone;
    }
    view->has_group = false;
    view->group_name.clear();
    Take(copy, job_size, view);
    return CallLook::kCall;
  }
  return CallLook::kChanging;
}

CallsView ReadCalls(const CallBoardLayout& board, uint32_t job_size) {
  CallsView found;
  for (uint32_t slot = 0; slot < kCallSlots; ++slot) {
    CallView view;
    view.slot = slot;
    switch (ReadCall(board.slots[slot], job_size, &view)) {
      case CallLook::kNone:
        break;
      case CallLook::kCall:
        found.calls.push_back(std::move(view));
        break;
      case CallLook::kChanging:
        found.changing = true;
        break;
    }
  }
  found.unshown = LoadRelaxed(board.unshown);
  return found;
}

std::string CallPhrase(const CallView& view) {
  std::string text = CallText(view.name);
  if (view.inner != CallName::kNone) {
    text +=
        std::string(" for ") + (view.is_nonblocking ? "a nonblocking " : "") + CallText(view.inner);
  }
  if (!view.file.empty()) {
    text += " of " + view.file;
    text += view.has_object ? ", from byte " + std::to_string(view.object) + " on" : "";
  } else if (view.has_group) {
    text += " on " + (view.group_name.empty() ? "communicator " + std::to_string(view.group)
                                              : view.group_name);
  }
  if (view.has_number) {
    text += ", number " + std::to_string(view.number);
  }
  if (view.peer == kCallAnyRank) {
    text += std::string(view.has_group ? ", " : " ") + "from any rank";
  } else if (view.peer != kCallNoRank) {
    text += view.has_group ? ", " : " ";
    text += view.is_peer_root ? "root " : BeforePeer(view);
    text += RankText(view);
  }
  if (view.any_tag) {
    text += ", any tag";
  } else if (view.has_tag) {
    text += ", tag " + std::to_string(view.tag);
  }
  return view.has_bytes ? text + ", " + BytesText(view.bytes) : text;
}

}  // namespace ferry::shm
