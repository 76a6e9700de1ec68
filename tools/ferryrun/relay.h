// The relay: a ferryrun on another host that starts agents on hosts behind it, and carries their
// streams over its own standard streams (agent_protocol.h, frames from kTree on).
//
//   ferryrun === relay on b --- agent on b
//                          \--- agent on c
//                          \=== relay on d --- agent on d
//                                         \--- agent on e
//
// === carries frames whose third number is a channel, --- the bytes of one agent. An agent notices
// nothing of it. The relay reads no agent's words; it copies them, by frames of at most a block,
// and passes on unread what belongs to channels of relays below it.
//
// Each direction of a channel has a window (kChannelWindowBytes) between ferryrun and the relay
// that has started the agent, so that none of them keeps others waiting. Toward ferryrun, relays
// besides stop reading while their own output waits.
//
// A relay whose input ends kills its launchers, closes the input of its own host's agent, and waits
// for that. Agents and relays behind it see that their input has ended, too, and do the same.
#pragma once

namespace ferry::tools {

// Serves the ferryrun at the standard streams until it is gone, or all agents have ended. Returns
// the exit code. Main thread of a process that does nothing else.
int RunRelay();

}  // namespace ferry::tools
