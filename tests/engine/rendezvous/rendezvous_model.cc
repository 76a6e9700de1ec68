#include "tests/engine/rendezvous/rendezvous_model.h"

#include <algorithm>

#include "shm/layout/match_layout.h"

namespace ferry::engine {

RendezvousModel::RendezvousModel(std::vector<Script> scripts, bool with_cut)
    : scripts_(std::move(scripts)), ranks_(scripts_.size()), may_cut_(with_cut) {
  channels_.resize(ranks_.size() * ranks_.size());
  for (Rank& rank : ranks_) {
    rank.sending.resize(ranks_.size());
    rank.seen.resize(ranks_.size());
  }
}

void RendezvousModel::Wrong(const std::string& what) {
  if (problem_.empty()) {
    problem_ = what;
  }
}

// ---- What can happen ----------------------------------------------------------------------------

size_t RendezvousModel::Choices() const {
  size_t choices = copies_.size() + (may_cut_ ? 1 : 0);
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    choices += ranks_[rank].next < scripts_[rank].size() ? 1 : 0;
  }
  for (const std::deque<Packet>& channel : channels_) {
    choices += channel.empty() ? 0 : 1;
  }
  return choices;
}

void RendezvousModel::Do(size_t choice) {
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].next < scripts_[rank].size() && choice-- == 0) {
      return Step(rank);
    }
  }
  for (size_t i = 0; i < channels_.size(); ++i) {
    if (!channels_[i].empty() && choice-- == 0) {
      return Deliver(static_cast<uint32_t>(i / ranks_.size()),
                     static_cast<uint32_t>(i % ranks_.size()));
    }
  }
  if (choice < copies_.size()) {
    const Copy copy = copies_[choice];
    copies_.erase(copies_.begin() + static_cast<ptrdiff_t>(choice));
    return Finish(copy);
  }
  Cut();
}

void RendezvousModel::Step(uint32_t rank) {
  const Action& action = scripts_[rank][ranks_[rank].next++];
  switch (action.kind) {
    case Action::Kind::kSend:
      return Send(rank, action);
    case Action::Kind::kReceive:
      return Post(rank, action);
    case Action::Kind::kCancel:
      return Cancel(rank, action.receive);
  }
}

void RendezvousModel::Send(uint32_t rank, const Action& action) {
  const auto to = static_cast<uint32_t>(action.peer);
  const auto message = static_cast<uint32_t>(messages_.size());
  messages_.push_back({rank, to, action.tag, action.large});
  const std::optional<Rtr> rtr = ranks_[rank].sending[to].Send(0, action.tag, action.large);
  if (!action.large) {
    messages_[message].sender_done = true;
    Channel(rank, to).push_back({Packet::Kind::kEager, message, 0, {}});
  } else if (!rtr) {
    Channel(rank, to).push_back({Packet::Kind::kRts, message, 0, {}});
  } else {
    // The data leaves at once, and may arrive before the announcement.
    Channel(rank, to).push_back({Packet::Kind::kPut, message, rtr->receive, {}});
    copies_.push_back({true, message, rtr->receive});
    const Receive& receive = ranks_[to].receives[rtr->receive];
    if (receive.state != ReceiveState::kPosted) {
      Wrong("data is written into a receive that waits for none");
    }
  }
}

void RendezvousModel::Post(uint32_t rank, const Action& action) {
  Rank& self = ranks_[rank];
  const auto receive = static_cast<uint32_t>(self.receives.size());
  self.receives.push_back({{0, action.peer, action.tag}, {}});
  for (const uint32_t message : self.unexpected) {
    const Message& m = messages_[message];
    if (CouldShareAMessage(self.receives[receive].pattern,
                           {0, static_cast<int32_t>(m.from), m.tag})) {
      self.unexpected.erase(std::find(self.unexpected.begin(), self.unexpected.end(), message));
      if (m.large) {
        copies_.push_back({false, message, receive});
      } else {
        ways_.eager++;
      }
      return Match(rank, receive, message);
    }
  }
  SendRtrsThatMay(rank);
}

// Announces each receive that has become the first for its messages.
void RendezvousModel::SendRtrsThatMay(uint32_t rank) {
  Rank& self = ranks_[rank];
  for (uint32_t i = 0; i < self.receives.size(); ++i) {
    Receive& receive = self.receives[i];
    if (receive.state != ReceiveState::kPosted || !IsAdvertisable(receive.pattern) ||
        receive.rtr.state() != ReceiveByRtr::State::kQuiet) {
      continue;
    }
    const bool behind =
        std::any_of(self.receives.begin(), self.receives.begin() + i, [&](const Receive& earlier) {
          return earlier.state == ReceiveState::kPosted &&
                 CouldShareAMessage(earlier.pattern, receive.pattern);
        });
    if (!behind) {
      const auto source = static_cast<uint32_t>(receive.pattern.source);
      Channel(rank, source)
          .push_back({Packet::Kind::kRtr, 0, i,
                      receive.rtr.SendRtr(receive.pattern, i, 0, self.seen[source])});
    }
  }
}

void RendezvousModel::Cancel(uint32_t rank, uint32_t index) {
  Receive& receive = ranks_[rank].receives[index];
  if (receive.state != ReceiveState::kPosted) {
    return;
  }
  if (receive.rtr.Cancel()) {
    receive.state = ReceiveState::kCancelled;
    SendRtrsThatMay(rank);
  } else {
    Channel(rank, static_cast<uint32_t>(receive.pattern.source))
        .push_back({Packet::Kind::kWithdraw, 0, index, {}});
  }
}

// ---- Packets ------------------------------------------------------------------------------------

void RendezvousModel::Deliver(uint32_t from, uint32_t to) {
  const Packet packet = Channel(from, to).front();
  Channel(from, to).pop_front();
  Rank& self = ranks_[to];
  switch (packet.kind) {
    case Packet::Kind::kEager:
    case Packet::Kind::kRts:
      self.seen[from]++;
      return Arrive(to, packet.message, packet.kind == Packet::Kind::kRts);
    case Packet::Kind::kPut: {
      self.seen[from]++;
      Receive& receive = self.receives[packet.receive];
      if (!receive.rtr.Announce()) {
        Wrong("a message is announced for a receive that no RTR names");
      }
      return Match(to, packet.receive, packet.message);
    }
    case Packet::Kind::kPutDone: {
      Receive& receive = self.receives[packet.receive];
      if (receive.message != static_cast<int32_t>(packet.message)) {
        Wrong("data was written into the receive of another message");
      }
      receive.state = ReceiveState::kDone;
      messages_[packet.message].state = MessageState::kDone;
      ways_.written++;
      return;
    }
    case Packet::Kind::kReadDone:
      messages_[packet.message].sender_done = true;
      return;
    case Packet::Kind::kRtr:
      (void)self.sending[from].Keep(packet.rtr);
      return;
    case Packet::Kind::kWithdraw:
      self.sending[from].Withdraw(packet.receive, 0);
      Channel(to, from).push_back({Packet::Kind::kAcknowledge, 0, packet.receive, {}});
      return;
    case Packet::Kind::kAcknowledge: {
      Receive& receive = self.receives[packet.receive];
      if (receive.rtr.Acknowledge()) {
        receive.state = ReceiveState::kCancelled;
        ways_.cancelled++;
        SendRtrsThatMay(to);
      }
      return;
    }
  }
}

void RendezvousModel::Arrive(uint32_t rank, uint32_t message, bool rts) {
  Rank& self = ranks_[rank];
  const Message& m = messages_[message];
  messages_[message].state = MessageState::kArrived;
  for (uint32_t i = 0; i < self.receives.size(); ++i) {
    if (self.receives[i].state == ReceiveState::kPosted &&
        CouldShareAMessage(self.receives[i].pattern, {0, static_cast<int32_t>(m.from), m.tag})) {
      self.receives[i].rtr.Match();
      if (rts) {
        copies_.push_back({false, message, i});
      } else {
        ways_.eager++;
      }
      return Match(rank, i, message);
    }
  }
  self.unexpected.push_back(message);
}

// Checks the order that MPI 5.0, section 3.5, requires at the moment of matching.
void RendezvousModel::Match(uint32_t rank, uint32_t index, uint32_t message) {
  Rank& self = ranks_[rank];
  Receive& receive = self.receives[index];
  Message& m = messages_[message];
  const ReceivePattern envelope{0, static_cast<int32_t>(m.from), m.tag};
  if (receive.state != ReceiveState::kPosted || m.state == MessageState::kMatched) {
    Wrong("something is matched twice");
  }
  if (!CouldShareAMessage(receive.pattern, envelope)) {
    Wrong("a message is given to a receive that is not for it");
  }
  for (uint32_t i = 0; i < index; ++i) {
    if (self.receives[i].state == ReceiveState::kPosted &&
        CouldShareAMessage(self.receives[i].pattern, envelope)) {
      Wrong("an earlier receive was passed over");
    }
  }
  for (uint32_t i = 0; i < message; ++i) {
    const Message& earlier = messages_[i];
    if (earlier.from == m.from && earlier.to == m.to && earlier.state < MessageState::kMatched &&
        CouldShareAMessage(receive.pattern, {0, envelope.source, earlier.tag})) {
      Wrong("a message overtook an earlier one");
    }
  }
  receive.message = static_cast<int32_t>(message);
  receive.state = m.large ? ReceiveState::kMatched : ReceiveState::kDone;
  m.state = m.large ? MessageState::kMatched : MessageState::kDone;
  SendRtrsThatMay(rank);
}

void RendezvousModel::Finish(const Copy& copy) {
  Message& m = messages_[copy.message];
  Receive& receive = ranks_[m.to].receives[copy.receive];
  if (receive.state != ReceiveState::kPosted &&
      receive.message != static_cast<int32_t>(copy.message)) {
    Wrong("data is written into the receive of another message");
  }
  if (copy.write) {
    m.sender_done = true;
    Channel(m.from, m.to).push_back({Packet::Kind::kPutDone, copy.message, copy.receive, {}});
  } else {
    receive.state = ReceiveState::kDone;
    m.state = MessageState::kDone;
    ways_.read++;
    Channel(m.to, m.from).push_back({Packet::Kind::kReadDone, copy.message, 0, {}});
  }
}

// The links between all ranks are cut and come back: transfers under way have failed at both ends.
void RendezvousModel::Cut() {
  may_cut_ = false;
  copies_.clear();
  for (std::deque<Packet>& channel : channels_) {
    channel.clear();
  }
  for (Message& message : messages_) {
    if (message.state != MessageState::kDone) {
      message.state = MessageState::kCut;
    }
    message.sender_done = true;
  }
  for (Rank& rank : ranks_) {
    rank.sending.assign(ranks_.size(), {});
    rank.seen.assign(ranks_.size(), 0);
    rank.unexpected.clear();
    for (Receive& receive : rank.receives) {
      if (receive.state == ReceiveState::kPosted || receive.state == ReceiveState::kMatched) {
        receive.state = ReceiveState::kCut;
        receive.rtr = {};
      }
    }
  }
}

// ---- Judging ------------------------------------------------------------------------------------

void RendezvousModel::CheckEnd() {
  for (const Message& message : messages_) {
    if (message.state == MessageState::kSent || message.state == MessageState::kMatched) {
      Wrong("a message never arrived");
    }
    if (!message.sender_done && message.state != MessageState::kArrived) {
      Wrong("a send never ended");
    }
  }
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    for (const Receive& receive : ranks_[rank].receives) {
      if (receive.state == ReceiveState::kMatched ||
          receive.rtr.state() == ReceiveByRtr::State::kWithdrawing) {
        Wrong("a receive never ended");
      }
      for (const uint32_t message : ranks_[rank].unexpected) {
        const Message& m = messages_[message];
        if (receive.state == ReceiveState::kPosted &&
            CouldShareAMessage(receive.pattern, {0, static_cast<int32_t>(m.from), m.tag})) {
          Wrong("a message and a receive for it both wait");
        }
      }
    }
    for (uint32_t peer = 0; peer < ranks_.size(); ++peer) {
      const SenderSide& side = ranks_[rank].sending[peer];
      for (uint32_t i = 0; i < side.held(); ++i) {
        if (ranks_[peer].receives[side.rtr(i).receive].state != ReceiveState::kPosted) {
          Wrong("an RTR outlived its receive");
        }
      }
    }
  }
}

std::string RendezvousModel::Key() const {
  std::string key;
  const auto put = [&key](auto... values) { (key.push_back(static_cast<char>(values)), ...); };
  put(may_cut_);
  for (const Rank& rank : ranks_) {
    put(rank.next, rank.receives.size(), rank.unexpected.size());
    for (const Receive& receive : rank.receives) {
      put(receive.state, receive.message, receive.rtr.state());
    }
    for (const uint32_t message : rank.unexpected) {
      put(message);
    }
    for (size_t peer = 0; peer < ranks_.size(); ++peer) {
      const SenderSide& side = rank.sending[peer];
      put(rank.seen[peer], side.sent(), side.held());
      for (uint32_t i = 0; i < side.held(); ++i) {
        put(side.rtr(i).receive, side.rtr(i).seen);
      }
    }
  }
  for (const std::deque<Packet>& channel : channels_) {
    put(channel.size());
    for (const Packet& packet : channel) {
      put(packet.kind, packet.message, packet.receive, packet.rtr.seen);
    }
  }
  put(messages_.size());
  for (const Message& message : messages_) {
    // The order in which the ranks sent tells which message it is.
    put(message.from, message.to, message.tag, message.state, message.sender_done);
  }
  std::vector<std::string> copies;  // their order does not matter
  for (const Copy& copy : copies_) {
    copies.push_back({static_cast<char>(copy.write), static_cast<char>(copy.message),
                      static_cast<char>(copy.receive)});
  }
  std::sort(copies.begin(), copies.end());
  for (const std::string& copy : copies) {
    key += copy;
  }
  return key;
}

}  // namespace ferry::engine
