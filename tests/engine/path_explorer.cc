#include "tests/engine/path_explorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_set>
#include <utility>

#include "tests/engine/path_pair.h"

namespace ferry::engine {
namespace {

using shm::PeerPath;
using shm::RequestState;

constexpr int32_t kTag = 7;
constexpr uint64_t kLongBytes = shm::kRunBytes + 1;

// One run of a program: what each event does, and what must hold in the end.
class Run {
 public:
  enum class Event : uint8_t {
    kStep,
    kProgress,
    kRetry,  // the same, when nothing has arrived
    kWorker,
    kDeliverDaemon,
    kDeliverLink,
    kFault,
    kNotice,
    kReturn,
    kNoticeLoss,
    kEndLink,
  };
  struct Choice {
    Event event;
    uint32_t side;
  };

  // In the memory of `pair`, whatever happened in there before.
  Run(const Program& program, PathPair* pair) : program_(program), pair_(*pair) { pair_.Restart(); }

  std::vector<Choice> Choices() {
    std::vector<Choice> choices;
    const auto rts = [&](Event event, uint32_t side, bool possible) {
      if (possible) {
        choices.push_back({event, side});
      }
    };
    for (uint32_t side = 0; side < 2; ++side) {
      const bool lives = !pair_.is_dead(side);
      const bool looks = pair_.engine(side).HasArrivals();
      rts(Event::kStep, side, lives && next_[side] < program_.scripts[side].size());
      rts(Event::kProgress, side, lives && looks);
      rts(Event::kRetry, side, lives && !looks && pair_.engine(side).WaitsForRoom());
      rts(Event::kWorker, side, lives && looks && program_.with_workers);
      rts(Event::kDeliverDaemon, side, pair_.CanDeliver(Core::kDaemon, side));
      rts(Event::kDeliverLink, side, pair_.CanDeliver(Core::kLink, side));
      rts(Event::kNotice, side, lives && pair_.CanNotice(side));
      rts(Event::kReturn, side, lives && pair_.CanReturn(side));
      rts(Event::kNoticeLoss, side, pair_.CanNoticeLoss(side));
      rts(Event::kEndLink, side, lives && has_cut_ && pair_.HasEnd(side) && !pair_.CanNotice(side));
    }
    rts(Event::kFault, 0, !has_failed_ && program_.fault != Fault::kNone);
    rts(Event::kFault, 1, !has_failed_ && program_.fault == Fault::kDeath);
    return choices;
  }

  void Do(const Choice& choice) {
    const uint32_t side = choice.side;
    switch (choice.event) {
      case Event::kStep:
        Step(side, program_.scripts[side][next_[side]++]);
        break;
      case Event::kProgress:
      case Event::kRetry:
        pair_.rank(side).Progress();
        break;
      case Event::kWorker:
        pair_.worker(side).Progress();
        break;
      case Event::kDeliverDaemon:
        pair_.Deliver(Core::kDaemon, side);
        break;
      case Event::kDeliverLink:
        pair_.Deliver(Core::kLink, side);
        break;
      case Event::kFault:
        Fail(side);
        break;
      case Event::kNotice:
        pair_.Notice(side);
        break;
      case Event::kReturn:
        pair_.Return(side);
        break;
      case Event::kNoticeLoss:
        pair_.EndLink(side);
        break;
      case Event::kEndLink:
        pair_.EndLink(side);
        break;
    }
    if (!pair_.is_dead(side)) {
      pair_.TakeCommands(side);
    }
    has_cut_ |= !pair_.IsUp(0) || !pair_.IsUp(1);
  }

  std::string Key() const {
    return pair_.Key() + std::to_string(next_[0]) + ',' + std::to_string(next_[1]) +
           (has_failed_ ? "f" : "") + (has_cut_ ? "c" : "");
  }

  // When nothing moves any more. An empty text, or what is wrong.
  std::string CheckEnd() {
    for (uint32_t side = 0; side < 2; ++side) {
      if (pair_.is_dead(side)) {
        continue;
      }
      for (const std::string& problem : {CheckMessages(side), CheckSends(side), CheckWords(side)}) {
        if (!problem.empty()) {
          return "rank " + std::to_string(side) + ": " + problem;
        }
      }
    }
    if (has_cut_ && !pair_.is_dead(0) && !pair_.is_dead(1)) {
      return CheckNewLife();
    }
    return {};
  }

  bool has_switched() const { return pair_.words(0).path_epoch + pair_.words(1).path_epoch != 0; }

 private:
  struct Sent {
    uint32_t request;
    std::string text;
  };
  struct Received {
    uint32_t request;
    bool is_short;
  };

  void Step(uint32_t side, Act act) {
    TestRank& rank = pair_.rank(side);
    switch (act) {
      case Act::kSend:
      case Act::kRts:
      case Act::kSynchronous: {
        const std::string text = {static_cast<char>('A' + side),
                                  static_cast<char>('0' + sent_[side].size())};
        const uint32_t request =
            act == Act::kSend
                ? rank.Isend(PathPair::kPeer, kTag, text)
                : rank.IsendByRequest(PathPair::kPeer, kTag, text,
                                      act == Act::kSynchronous ? shm::kRequestSynchronous : 0);
        sent_[side].push_back({request, text});
        break;
      }
      case Act::kWrite: {
        const std::string text = {static_cast<char>('A' + side),
                                  static_cast<char>('0' + sent_[side].size())};
        const uint32_t request = rank.NewRequest(shm::RequestKind::kSend, PathPair::kPeer, kTag, 0,
                                                 text + std::string(kLongBytes - text.size(), '.'));
        rank.slot(request).buffer.region = 3;
        Effects effects;
        rank.engine().sends().StartSend(request, effects);
        sent_[side].push_back({request, text});
        break;
      }
      case Act::kUse:
        if (pair_.HasEnd(0) && pair_.HasEnd(1)) {
          pair_.UseLink(side);
        }
        break;
      case Act::kLeave:
        pair_.LeaveLink(side);
        break;
      case Act::kReceive:
      case Act::kReceiveAny:
      case Act::kReceiveShort: {
        const bool any = act == Act::kReceiveAny;
        const bool is_short = act == Act::kReceiveShort;
        received_[side].push_back(
            {rank.Irecv(any ? shm::kAnySource : static_cast<int32_t>(PathPair::kPeer),
                        any ? shm::kAnyTag : kTag, is_short ? 1 : 2),
             is_short});
        break;
      }
      case Act::kReceiveLong: {
        const uint32_t request = rank.NewRequest(shm::RequestKind::kReceive, PathPair::kPeer, kTag,
                                                 0, std::string(kLongBytes, ' '));
        rank.slot(request).buffer.region = 3;
        Effects effects;
        EXPECT_EQ(rank.engine().receives().StartReceive(request, effects), ErrorCode::kOk);
        received_[side].push_back({request, false});
        break;
      }
      case Act::kProbe: {
        ProbeResult found;
        (void)rank.engine().receives().Probe({0, PathPair::kPeer, shm::kAnyTag}, &found);
        break;
      }
      case Act::kCancelSend:
        rank.Cancel(sent_[side].back().request);
        break;
      case Act::kCancelReceive:
        rank.Cancel(received_[side].back().request);
        break;
    }
  }

  void Fail(uint32_t side) {
    has_failed_ = true;
    switch (program_.fault) {
      case Fault::kNone:
        break;
      case Fault::kDeath:
        pair_.Die(side);
        break;
      case Fault::kCut:
        pair_.Cut();
        break;
      case Fault::kLoss:
        pair_.LoseLink();
        break;
    }
  }

  ErrorCode ErrorOf(uint32_t side, uint32_t request) {
    return static_cast<ErrorCode>(pair_.rank(side).slot(request).error);
  }

  // Receives have got what the other rank sent, in order. Without a fault they have got all of it,
  // but what was cancelled.
  std::string CheckMessages(uint32_t side) {
    const std::vector<Sent>& sent = sent_[1 - side];
    size_t next = 0;
    bool is_short_of = false;
    for (const Received& receive : received_[side]) {
      TestRank& rank = pair_.rank(side);
      if (!rank.Test(receive.request)) {
        if (rank.state(receive.request) != RequestState::kPosted) {
          return "a receive is in state " +
                 std::to_string(static_cast<int>(rank.state(receive.request)));
        }
        is_short_of = true;
        continue;
      }
      const ErrorCode error = ErrorOf(side, receive.request);
      const shm::RequestLayout& slot = rank.slot(receive.request);
      if (error == ErrorCode::kCancelled) {
        continue;
      }
      if (error != (receive.is_short ? ErrorCode::kTruncated : ErrorCode::kOk)) {
        if (!MayEndWith(error)) {
          return "a receive failed: " + std::to_string(static_cast<int>(error));
        }
        continue;
      }
      if (is_short_of) {
        return "a receive was overtaken by a later one";
      }
      const std::string data(reinterpret_cast<const char*>(slot.buffer.address),
                             receive.is_short ? 1 : 2);
      const auto is_it = [&](const Sent& message) {
        return message.text.substr(0, data.size()) == data;
      };
      // With one byte, all messages look alike: it is the next one that was not cancelled.
      while (next < sent.size() && (WasCancelled(1 - side, sent[next]) || !is_it(sent[next]))) {
        if (!WasCancelled(1 - side, sent[next]) && !has_failed_) {
          return "got " + data + " in place of " + sent[next].text;
        }
        ++next;
      }
      if (next == sent.size()) {
        return "got " + data + ", which was not the next";
      }
      ++next;
    }
    for (; next < sent.size() && is_short_of && !has_failed_; ++next) {
      if (!WasCancelled(1 - side, sent[next])) {
        return "a receive waits, though " + sent[next].text + " was sent";
      }
    }
    return {};
  }

  // Whatever a rank notices first of its peer's death.
  bool MayEndWith(ErrorCode error) const {
    return has_failed_ &&
           error == (program_.fault == Fault::kDeath ? ErrorCode::kPeerDied : ErrorCode::kLinkDown);
  }

  bool WasCancelled(uint32_t side, const Sent& message) {
    return pair_.rank(side).state(message.request) == RequestState::kComplete &&
           ErrorOf(side, message.request) == ErrorCode::kCancelled;
  }

  // An RTS may wait for its receive; nothing waits for a path.
  std::string CheckSends(uint32_t side) {
    for (const Sent& message : sent_[side]) {
      switch (pair_.rank(side).state(message.request)) {
        case RequestState::kComplete:
          if (const ErrorCode error = ErrorOf(side, message.request);
              error != ErrorCode::kOk && error != ErrorCode::kCancelled && !MayEndWith(error)) {
            return message.text + " failed: " + std::to_string(static_cast<int>(error));
          }
          break;
        case RequestState::kRemoteWait:
          if (pair_.rank(side).slot(message.request).link_end != 0) {
            return message.text + " has been lost, and does not end";
          }
          break;
        default:
          return message.text + " has not left";
      }
    }
    return {};
  }

  std::string CheckWords(uint32_t side) {
    const shm::PeerWords& own = pair_.words(side);
    const shm::PeerWords& other = pair_.words(1 - side);
    const shm::SessionLayout& session = *pair_.view(side).layout;
    if (pair_.rank(side).poison() != ErrorCode::kOk) {
      return "it is poisoned";
    }
    if (session.credits_owed != 0 || session.queued_sends != 0 || session.link_duties != 0) {
      return "something is owed, queued or to be done";
    }
    if (session.linked_peers != ((own.path | own.inward_path) != 0 ? 1 : 0)) {
      return "linked_peers is wrong";
    }
    if ((own.path & 1) != 0) {
      return "the path is " + std::to_string(own.path);
    }
    if (pair_.is_dead(1 - side)) {
      return {};
    }
    const bool wants_link = pair_.link(side).state == static_cast<uint32_t>(shm::LinkState::kOpen);
    if ((own.path == static_cast<uint32_t>(PeerPath::kLink)) != wants_link) {
      return "the path is not the one that was asked for";
    }
    if (own.path != other.inward_path) {
      return "the two do not agree on the path";
    }
    if (own.sent != other.drained || own.credited != other.returned ||
        own.pushed_credited != other.pushed_returned) {
      return "the counts do not agree";
    }
    return {};
  }

  // After a cut the two begin anew: what is sent then arrives, by either path, and nothing old.
  std::string CheckNewLife() {
    for (uint32_t side = 0; side < 2; ++side) {
      for (int i = 0; i < 2; ++i) {  // each may still have to hear of the cut
        (void)pair_.rank(side).Isend(PathPair::kPeer, 1, "x");
        (void)pair_.rank(side).Irecv(PathPair::kPeer, 2, 1);
      }
    }
    for (const bool by_link : {false, true}) {
      if (by_link) {
        for (uint32_t side = 0; side < 2; ++side) {
          if (pair_.HasEnd(side)) {
            pair_.EndLink(side);
          }
        }
        pair_.Settle();
        pair_.OpenLink();
        pair_.UseLink(0);
        pair_.UseLink(1);
      }
      for (uint32_t side = 0; side < 2; ++side) {
        const std::string text = by_link ? "by link" : "by daemon";
        const uint32_t send = pair_.rank(side).Isend(PathPair::kPeer, 3, text);
        const uint32_t receive = pair_.rank(1 - side).Irecv(PathPair::kPeer, 3, 16);
        pair_.TakeCommands(side);
        pair_.Settle();
        if (pair_.rank(side).state(send) != RequestState::kComplete ||
            !pair_.rank(1 - side).Test(receive) || ErrorOf(1 - side, receive) != ErrorCode::kOk) {
          return "nothing passes after the cut (" + text + ")";
        }
        if (pair_.rank(1 - side).Finish(receive).data != text) {
          return "something old came after the cut";
        }
      }
    }
    return pair_.words(0).path == static_cast<uint32_t>(PeerPath::kLink) ? "" : "no new link";
  }

  const Program& program_;
  PathPair& pair_;
  size_t next_[2] = {};
  std::vector<Sent> sent_[2];
  std::vector<Received> received_[2];
  bool has_failed_ = false;
  bool has_cut_ = false;
};

std::string ToText(const Program& program) {
  constexpr const char* kNames[] = {"send",  "RTS",     "sync",     "write", "use",
                                    "leave", "receive", "any",      "short", "long",
                                    "probe", "unsend",  "unreceive"};
  std::string text;
  for (const Script& script : program.scripts) {
    for (const Act act : script) {
      text += std::string(kNames[static_cast<size_t>(act)]) + ' ';
    }
    text += "; ";
  }
  return text + "fault " + std::to_string(static_cast<int>(program.fault));
}

std::string ToText(const std::vector<Run::Choice>& schedule) {
  constexpr const char* kNames[] = {"step",  "progress", "retry",  "worker", "daemon", "link",
                                    "FAULT", "notice",   "return", "loss",   "end"};
  std::string text;
  for (const Run::Choice& choice : schedule) {
    text +=
        std::string(kNames[static_cast<size_t>(choice.event)]) + std::to_string(choice.side) + ' ';
  }
  return text;
}

// Runs the schedule, then always the first of the events that are possible, up to a state that is
// known. Adds what else could have been done on the way to `open`.
void RunOn(const Program& program, PathPair* pair, std::vector<Run::Choice> schedule,
           std::unordered_set<uint64_t>* known, std::vector<std::vector<Run::Choice>>* open,
           Totals* totals) {
  Run run(program, pair);
  for (const Run::Choice& choice : schedule) {
    run.Do(choice);
  }
  std::string before;
  for (;;) {
    const uint64_t key = std::hash<std::string>()(run.Key());  // two alike would be a wonder
    if (!known->insert(key).second && !schedule.empty()) {
      return;
    }
    totals->states++;
    const std::vector<Run::Choice> choices = run.Choices();
    const bool only_waits =
        std::all_of(choices.begin(), choices.end(),
                    [](const Run::Choice& choice) { return choice.event == Run::Event::kRetry; });
    if (only_waits) {
      // Looking may change nothing: then this is the end.
      for (const Run::Choice& choice : choices) {
        run.Do(choice);
        schedule.push_back(choice);
      }
      if (std::hash<std::string>()(run.Key()) == key) {
        totals->ends++;
        totals->switched += run.has_switched() ? 1 : 0;
        const std::string problem = run.CheckEnd();
        ASSERT_EQ(problem, "") << ToText(program) << "\n" << ToText(schedule);
        return;
      }
      continue;
    }
    for (size_t i = 1; i < choices.size(); ++i) {
      open->push_back(schedule);
      open->back().push_back(choices[i]);
    }
    schedule.push_back(choices[0]);
    run.Do(choices[0]);
    ASSERT_FALSE(testing::Test::HasFailure()) << ToText(program) << "\n" << ToText(schedule);
  }
}

}  // namespace

void Explore(const Program& program, Totals* totals) {
  EngineOptions options;
  options.push_max_bytes = program.pushes ? 1024 : 0;
  options.receiver_first_min_bytes = program.announces ? kLongBytes : 0;
  PathPair pair(options);
  std::unordered_set<uint64_t> known;
  std::vector<std::vector<Run::Choice>> open = {{}};
  while (!open.empty() && !testing::Test::HasFailure()) {
    std::vector<Run::Choice> schedule = std::move(open.back());
    open.pop_back();
    RunOn(program, &pair, std::move(schedule), &known, &open, totals);
  }
  totals->programs++;
}

}  // namespace ferry::engine
