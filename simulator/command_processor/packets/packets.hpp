// What each packet does; named as in the packet table, which has checked ring, length and unknown bits before.
//
// Thread-safety: the machine's one thread. Ownership: borrows both.
#pragma once

#include "simulator/command_processor/machine.hpp"

namespace kiln::simulator::packets {

Outcome nop(Machine& machine, const Packet& packet);
Outcome cond_exec(Machine& machine, const Packet& packet);
Outcome indirect_buffer(Machine& machine, const Packet& packet);

Outcome set_sh_reg(Machine& machine, const Packet& packet);
Outcome set_sh_reg_index(Machine& machine, const Packet& packet);
Outcome load_sh_reg_index(Machine& machine, const Packet& packet);
Outcome set_context_reg(Machine& machine, const Packet& packet);
Outcome set_uconfig_reg(Machine& machine, const Packet& packet);
Outcome context_control(Machine& machine, const Packet& packet);
Outcome clear_state(Machine& machine, const Packet& packet);

Outcome set_base(Machine& machine, const Packet& packet);
Outcome dispatch_direct(Machine& machine, const Packet& packet);
Outcome dispatch_indirect(Machine& machine, const Packet& packet);

// Draws: of those only the ones that expand a compressed image.
Outcome num_instances(Machine& machine, const Packet& packet);
Outcome draw_index_auto(Machine& machine, const Packet& packet);

Outcome write_data(Machine& machine, const Packet& packet);
Outcome copy_data(Machine& machine, const Packet& packet);
Outcome dma_data(Machine& machine, const Packet& packet);
Outcome atomic_mem(Machine& machine, const Packet& packet);

Outcome acquire_mem(Machine& machine, const Packet& packet);
Outcome release_mem(Machine& machine, const Packet& packet);
Outcome wait_reg_mem(Machine& machine, const Packet& packet);
Outcome event_write(Machine& machine, const Packet& packet);
Outcome pfp_sync_me(Machine& machine, const Packet& packet);

}  // namespace kiln::simulator::packets
