"""Everything that is computed: data, models, attacks, accounting, reports, and the stages that run them."""
