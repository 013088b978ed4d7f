"""What can be wrong with asking for a setting, or for its change."""

from handaxe.contract.faults import ToolFault


class UnknownSetting(ToolFault):
    """There is no setting of that name."""

    code = "setting.unknown"


class BadSetting(ToolFault):
    """The value does not fit the setting."""

    code = "setting.bad_value"


class SettingNotWritten(ToolFault):
    """The settings file could not be changed; it is as it was."""

    code = "setting.not_written"
