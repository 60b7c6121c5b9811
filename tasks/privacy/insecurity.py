"""Why a model has no secure noise: words of refusals, which decide no output."""

DECIDES_NOTHING = True
NO_NOISE = "it draws no noise, or none that is made to be secure"
FUNCTIONAL = "its noise is on the coefficients of a loss that is minimised in floating point, not on what is released"
OBJECTIVE = "its noise is a term of an objective that is minimised in floating point, not added to what is released"
OWN_SCALES = "in the published accounting each user draws noise of an own scale, and here one draw stands for all"
SIMULATED = "users, friends and recommender each draw shares of the noise; here one process simulates them all"
KEYED = "its noise is a function of a key and of what is asked, by a hash that is not cryptographic"
