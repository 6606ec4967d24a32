"""The suite's own small command, `toolroll`: it wires the tools into hosts, tries and shows them."""
