"""The four stages of DDFA: discriminate, discretize, factorize, adjust.

Each module holds plain functions on arrays and small estimators around them, usable
alone; ``published`` puts them together as the paper had them.
"""
